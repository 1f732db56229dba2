"""The transform ops of the `tc` dialect, one op per module."""

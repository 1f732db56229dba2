"""Code that the ops of the `tc` dialect share."""

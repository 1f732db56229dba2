"""What the ops of the `tc` dialect share."""

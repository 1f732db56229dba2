"""The commands of `stepladder`, one a module: `add_parser(subparsers)`, and `main(args)` returning the exit status."""

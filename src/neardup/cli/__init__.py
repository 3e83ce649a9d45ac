"""The command line: a file for each command, options in one place, what is shown in another."""

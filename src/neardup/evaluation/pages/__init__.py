"""Pages to read in a browser: one file each, with everything in it, and nothing that asks the network."""

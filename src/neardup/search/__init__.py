"""Features to pairs: the engines in memory."""

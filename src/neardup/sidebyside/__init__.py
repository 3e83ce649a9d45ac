"""Two texts side by side: what they have in common, what differs, and how a page shows it."""

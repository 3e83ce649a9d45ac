"""Pages: one HTML file each, that needs nothing but a browser."""

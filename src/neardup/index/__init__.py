"""The index on disk: documents that later ones are compared with, in segments that never change."""

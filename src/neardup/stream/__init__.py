"""The flow of documents: each is judged as it comes, and its verdict is on disk."""

"""The flow on Spark: a stream of documents in, a stream of verdicts out."""

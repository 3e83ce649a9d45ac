"""The chain in memory: documents in, findings and their result out; explanations, queries and neighbours."""

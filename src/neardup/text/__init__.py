"""Text to comparable text: normalisation, sentences, stop words."""

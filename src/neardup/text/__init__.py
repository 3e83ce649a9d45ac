"""Text to comparable text: encodings, markup, normalization, sentences, stop words; and alignment of two texts."""

"""All Numba code: arrays in, arrays out; no options, no errors. Each has a plain twin in the tests."""

"""Recipes compared on labelled documents."""

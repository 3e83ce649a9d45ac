"""The watched folder: files are taken as they appear, judged once, and put where their verdict says."""

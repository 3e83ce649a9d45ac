"""What a delivered file contains: items of feeds, JSON, mail, crawls, pages and plain texts."""

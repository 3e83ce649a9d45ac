"""What lies in a file of news: its kind told by the content, its items taken out, the article of a page found."""

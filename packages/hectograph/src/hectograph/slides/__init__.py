"""Google Slides: presentations with their pages, shapes, tables and pictures."""

"""What commands show: the live view, plain lines, tables, and words for numbers."""

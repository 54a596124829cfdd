"""Gold: runs → a pool of items → labels → gold. No rendering."""

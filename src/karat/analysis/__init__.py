"""Analysis: runs → verdicts. One public function per file, its result class beside it, no rendering."""

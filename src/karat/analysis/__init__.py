"""Analysis: runs → verdicts. One public function per file or folder, with its result class; no rendering."""

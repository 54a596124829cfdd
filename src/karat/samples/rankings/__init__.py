"""Rankings: three layouts of what was retrieved (lists, dicts, table), each with one `find`."""

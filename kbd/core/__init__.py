"""Pure rules: values in, values out. No clock, no files, no environment."""

"""Lessons written in other forms, read and written as entries; nothing of their words is lost."""

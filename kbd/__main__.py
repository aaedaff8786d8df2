"""Lets `python -m kbd` be the command `kbd`."""

from kbd.cli.main import main

if __name__ == "__main__":
    main(prog_name="kbd")

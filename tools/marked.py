"""Parts of pages that programs write: what is between a mark and `<!-- end -->`."""

END = "<!-- end -->"


def replaced(page: str, mark: str, part: str) -> str:
    """Return a page with another part behind this mark.

    Raises:
        ValueError: the page does not have the mark, or no end behind it.
    """
    before, opening, rest = page.partition(mark)
    _, end, after = rest.partition(END)
    if not opening or not end:
        raise ValueError(f"the page has no part that begins with {mark} and ends with {END}")
    return f"{before}{mark}\n\n{part.strip(chr(10))}\n\n{END}{after}"

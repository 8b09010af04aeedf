"""The files of the page: plain ES modules, a style and an HTML file, package data beside this one."""

from importlib.resources import files

# What the page is made of, by the endings of names; nothing else is served.
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
INDEX = "index.html"


def page_files() -> dict[str, bytes]:
    """All files of the page by their names, which have no folders."""
    folder = files("regard.web") / "page"
    return {
        own.name: own.read_bytes()
        for own in sorted(folder.iterdir(), key=lambda own: own.name)
        if own.is_file() and _ending(own.name) in MEDIA_TYPES
    }


def media_type(name: str) -> str:
    """The media type of a file of the page."""
    return MEDIA_TYPES[_ending(name)]


def _ending(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""

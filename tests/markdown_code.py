"""The code of a Markdown page: indented by four spaces, or fenced with the name of its language."""

import re


def fenced(text, language):
    """The blocks between ```language and ```, as they stand."""
    return re.findall(rf"^```{language}\b.*?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shell_lines(text):
    """Lines of code that a shell could run, in the page's order; a backslash joins lines."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines, language = [], None
    for line in joined.splitlines():
        if line.startswith("```"):
            language = None if language is not None else line.strip("`").split(" ")[0]
        elif language == "shell" or (language is None and line.startswith("    ")):
            lines.append(line.strip())
    return lines

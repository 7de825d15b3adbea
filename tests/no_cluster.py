"""What a Ray job does, without Ray."""

from secondlook.scale.parts import result_of


def in_this_process(_address, missing, open_tools, *, advance):
    do = open_tools()
    for work in missing:
        result, items = do(work.read_text("utf-8"))
        result_of(work).write_text(result, "utf-8")
        advance(items)

"""write_docs.py STUB OUTPUT: writes the docstrings of the type stub as entries of a C++ array.

    {"Model.info", "info(self)\\n--\\n\\nArchitecture and size."},

The first line of a function is the signature that inspect.signature() and help() show. Of overloads, the one with a
docstring counts. A public name without a docstring is an error.
"""

import ast
import json
import sys


def signature(function):
    """Without annotations, which signatures of C functions cannot have."""
    arguments = function.args
    for argument in [*arguments.args, *arguments.kwonlyargs]:
        argument.annotation = None
    return f"{function.name}({ast.unparse(arguments)})\n--\n\n"


def entries(body, prefix=""):
    for node in body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
            continue
        doc = ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            yield node.name, doc
            yield from entries(node.body, f"{node.name}.")
        elif any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
            yield prefix + node.name, doc
        else:
            yield prefix + node.name, doc and signature(node) + doc


def main():
    stub, output = sys.argv[1:]
    with open(stub, encoding="utf-8") as file:
        tree = ast.parse(file.read(), stub)
    found = {"": ast.get_docstring(tree)}
    for name, doc in entries(tree.body):
        found[name] = found.get(name) or doc
    missing = [name for name, doc in found.items() if not doc]
    if missing:
        sys.exit(f"error: {stub}: no docstring of {', '.join(missing)}")
    with open(output, "w", encoding="utf-8") as file:
        for name, doc in found.items():
            file.write(f"{{{json.dumps(name)}, {json.dumps(doc, ensure_ascii=False)}}},\n")


if __name__ == "__main__":
    main()

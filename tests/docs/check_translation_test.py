"""check_translation finds every kind of difference, and says where. Run from the top of the tree."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

PAGE = """# Page

[Translated](page.ko.md)

<!-- measured -->

| a | b |
| --- | --- |
| `one` | 1,234 × |

It takes 8 min 44 s, see [docs](docs/a.md) and `heed`.

## Second

```sh
heed info
```
"""
TRANSLATION = PAGE.replace("[Translated](page.ko.md)", "[Original](page.md)").replace("| a | b |", "| 가 | 나 |").replace(
    "It takes 8 min 44 s, see [docs](docs/a.md) and `heed`.", "`heed`는 8분 44초. [문서](docs/a.md)").replace(
        "## Second", "## 둘째")


class TestTranslation(unittest.TestCase):
    def check(self, translation, *expected):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "page.md").write_text(PAGE, encoding="utf-8")
            pathlib.Path(folder, "page.ko.md").write_text(translation, encoding="utf-8")
            said = subprocess.run([sys.executable, pathlib.Path("tests/docs/check_translation").resolve(), "page.md",
                                   "page.ko.md"], cwd=folder, capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stderr), (1 if expected else 0, ""), said.stdout)
        for text in expected:
            self.assertIn(text, said.stdout)

    def changed(self, before, after):
        self.assertIn(before, TRANSLATION)
        return TRANSLATION.replace(before, after)

    def test_same(self):
        self.check(TRANSLATION)

    def test_headings(self):
        self.check(self.changed("## 둘째", "### 둘째"), "headings: page.md:13", "page.ko.md:13")
        self.check(self.changed("## 둘째\n", ""), "headings: only page.md:13")

    def test_code_blocks(self):
        self.check(self.changed("heed info", "heed info --json"), "code block: page.md:16", "heed info --json")
        self.check(self.changed("```sh\nheed info\n```\n", ""), "code blocks: page.md has 1, page.ko.md has 0")

    def test_links(self):
        self.check(self.changed("docs/a.md", "docs/b.md"), "link: page.md:11 has docs/a.md",
                   "link: page.ko.md:11 has docs/b.md")
        self.check(self.changed("[Original](page.md)", ""), "page.ko.md must have one to page.md")

    def test_numbers(self):
        self.check(self.changed("1,234", "1,235"), "numbers of a row: page.md:9", "page.ko.md:9")
        self.check(self.changed("44초", "45초"), "number: page.md has 44", "number: page.ko.md has 45")

    def test_the_rest(self):
        self.check(self.changed("| `one` | 1,234 × |\n", ""), "rows of tables")
        self.check(self.changed("`one`", "`two`"), "code of a row: page.md:9")
        self.check(self.changed("`heed`", "heed"), "code: page.md has heed")
        self.check(self.changed("<!-- measured -->", "<!-- measured: x -->"), "comment: page.md:5")


if __name__ == "__main__":
    unittest.main()

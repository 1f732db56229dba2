"""lit's format of commands in files, for checkouts whose path has spaces; tests that take long begin first."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import lit.formats
import lit.Test
import lit.TestRunner
import served_commands

# What commands take, about, by what their lines have; some are abbreviations with `DEFINE:`.
SECONDS = {"RUN:": 0.2, "emulat": 0.5, "--check-each-step": 2.0, "%stepladder demo": 5.0}


class QuotedPaths(lit.formats.ShTest):
    """Commands in files, with the paths of the file and of its outputs quoted: lit substitutes %s, %S and %t as they
    are."""

    def getTestsForPath(
        self, testSuite: object, path_in_suite: tuple[str, ...], litConfig: object, localConfig: object
    ) -> Iterator[lit.Test.Test]:
        """Yields the test of a file, with how long it takes by its commands where lit has not run it before.

        lit begins with those that take longest, so that no process is without work at the end.
        """
        for test in super().getTestsForPath(testSuite, path_in_suite, litConfig, localConfig):
            if not test.previous_elapsed:
                text = Path(test.getSourcePath()).read_text()
                test.previous_elapsed = sum(text.count(part) * seconds for part, seconds in SECONDS.items())
            yield test

    def execute(self, test: lit.Test.Test, litConfig: object) -> object:
        """Runs the commands of a test.

        Args:
            test: the file; litConfig: of the run, by the name that lit gives it.

        Returns:
            Its result.
        """
        if not test.config.maxIndividualTestTime:  # a process that takes too long can be killed
            lit.TestRunner.subprocess = served_commands.Subprocess()
        source = test.getSourcePath()
        outputs = lit.TestRunner.getTempPaths(test)[1] + ".tmp"
        paths = [(r"%s\b", source), (r"%S\b", os.path.dirname(source)), (r"%t\b", outputs)]
        quoted = [(name, shlex.quote(path)) for name, path in paths]
        return lit.TestRunner.executeShTest(test, litConfig, self.execute_external, quoted)

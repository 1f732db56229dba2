"""lit's format of commands in files, for checkouts whose path has spaces."""

import os
import shlex

import lit.formats
import lit.Test
import lit.TestRunner


class QuotedPaths(lit.formats.ShTest):
    """Commands in files, with the paths of the file and of its outputs quoted: lit substitutes %s, %S and %t as they
    are."""

    def execute(self, test: lit.Test.Test, litConfig: object) -> object:
        """Runs the commands of a test.

        Args:
            test: the file; litConfig: of the run, by the name that lit gives it.

        Returns:
            Its result.
        """
        source = test.getSourcePath()
        outputs = lit.TestRunner.getTempPaths(test)[1] + ".tmp"
        paths = [(r"%s\b", source), (r"%S\b", os.path.dirname(source)), (r"%t\b", outputs)]
        quoted = [(name, shlex.quote(path)) for name, path in paths]
        return lit.TestRunner.executeShTest(test, litConfig, self.execute_external, quoted)

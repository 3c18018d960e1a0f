"""
The laws that every strategy, every store and every study keeps, as test classes to inherit.

Two lines test your own strategy (pytest and hypothesis must be installed)::

    class TestMine(eq.testing.StrategyLaws):
        strategy = Mine()

Four lines test whether a database can hold studies::

    class TestOurServer(eq.testing.StoreLaws):
        @pytest.fixture
        def where(self):
            return f"postgresql://user@our-server/studies#{uuid.uuid4()}"

And four whether what you built has the ask and tell of `Study` (`equipoise.study.StudyLike`)::

    class TestOurStudies(eq.testing.StudyLaws):
        @pytest.fixture
        def make(self):
            return OurStudy
"""

from equipoise.testing.stores import StoreLaws
from equipoise.testing.strategies import Scan, StrategyLaws
from equipoise.testing.studies import StudyLaws

__all__ = ["Scan", "StoreLaws", "StrategyLaws", "StudyLaws"]

"""
The laws that every strategy and every store keeps, as test classes to inherit.

Two lines test your own strategy (pytest and hypothesis must be installed)::

    class TestMine(eq.testing.StrategyLaws):
        strategy = Mine()

Four lines test whether a database can hold studies::

    class TestOurServer(eq.testing.StoreLaws):
        @pytest.fixture
        def where(self):
            return f"postgresql://user@our-server/studies#{uuid.uuid4()}"
"""

from equipoise.testing.stores import StoreLaws
from equipoise.testing.strategies import Scan, StrategyLaws

__all__ = ["Scan", "StoreLaws", "StrategyLaws"]

"""The whole contract, over HTTP."""

from __future__ import annotations

import pytest

from quire.ledger.base import Ledger
from quire.testing import LedgerConformance
from tests.sheets.conftest import MakeLedger


class TestSheets(LedgerConformance):
    @pytest.fixture
    def twin(self, ledger: Ledger, make_ledger: MakeLedger) -> Ledger:
        return make_ledger()

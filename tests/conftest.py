import pytest
import torch


@pytest.fixture(autouse=True)
def _fixed_random_state() -> None:
    torch.manual_seed(0)

import pytest
import torch


@pytest.fixture(autouse=True)
def _fixed_random_state() -> None:
    torch.manual_seed(0)
    # Tests work on small tensors, where a second thread costs more than it brings.
    torch.set_num_threads(1)

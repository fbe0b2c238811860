"""Opacus: DP-SGD of a linear model, with settings as its tutorials use them and no tuning."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from peers.task import Task
from tacit.errors import SettingError

Floats = npt.NDArray[np.float64]

EPOCHS, BATCH, RATE, CLIP = 10, 1024, 1.0, 1.0


def opacus_scores(task: Task) -> Floats:
    """Log odds on the test rows."""
    try:
        import torch
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset
    except ImportError as error:
        raise SettingError(f"opacus cannot be imported ({error}); install the extra `bench`") from None

    X, y, X_test = task.X, task.y, task.X_test
    torch.manual_seed(task.seed)
    torch.set_num_threads(1)
    rows, labels = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(y.astype(np.float32))
    model = torch.nn.Linear(X.shape[1], 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    loader = DataLoader(TensorDataset(rows, labels), batch_size=BATCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private, optimiser, loader = PrivacyEngine().make_private_with_epsilon(
            module=model,
            optimizer=optimiser,
            data_loader=loader,
            target_epsilon=task.epsilon,
            target_delta=task.delta,
            epochs=EPOCHS,
            max_grad_norm=CLIP,
        )
        loss = torch.nn.BCEWithLogitsLoss()
        for _ in range(EPOCHS):
            for some_rows, some_labels in loader:
                optimiser.zero_grad()
                loss(private(some_rows)[:, 0], some_labels).backward()
                optimiser.step()
    weight, bias = model.weight.detach().numpy()[0].astype(np.float64), float(model.bias.detach()[0])
    scores: Floats = X_test @ weight + bias
    return scores

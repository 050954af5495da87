"""Learns how independent causes combine (noisy-or, x + y − xy) from probabilities of causes and of their effect.

Each effect is a frequency over 2,000 trials, so the results are noisy; the law is found nevertheless.
"""

import numpy as np

from abelnet import LawRegressor

generator = np.random.default_rng(0)
causes = [generator.uniform(0, 0.6, generator.integers(2, 5)) for _ in range(400)]
effects = [generator.binomial(2000, 1 - np.prod(1 - one)) / 2000 for one in causes]

model = LawRegressor().fit(causes, effects)
print(model.laws_[0].summary())

many = generator.uniform(0, 0.05, 40)
print(f"\n40 weak causes: {model.predict([many])[0]:.4f}, exactly: {1 - np.prod(1 - many):.4f}")

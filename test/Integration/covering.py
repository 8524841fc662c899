# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Covering arrays: few cases in which each pair of values of two axes occurs together."""
import itertools
import random


def pairs_of(case):
    return {frozenset(pair) for pair in itertools.combinations(sorted(case.items(), key=lambda item: item[0]), 2)}


def covering_array(axes, seed, allowed=lambda case: True):
    """`axes`: the values of each, by name. `allowed` may exclude values that do not go together; it gets cases that lack axes.
    Returns cases, the same for a seed, and the number of pairs that they cover."""
    rng = random.Random(seed)
    open_pairs = [dict(pair) for first, second in itertools.combinations(axes, 2)
                  for pair in itertools.product([(first, a) for a in axes[first]], [(second, b) for b in axes[second]])]
    open_pairs = {frozenset(pair.items()) for pair in open_pairs if allowed(pair)}
    count, cases = len(open_pairs), []
    while open_pairs:
        # The same order in every process, whatever the hashes are.
        case = dict(rng.choice(sorted(open_pairs, key=lambda pair: sorted(map(repr, pair)))))
        for name in rng.sample([name for name in axes if name not in case], len(axes) - len(case)):
            choices = [{**case, name: value} for value in axes[name]]
            choices = [choice for choice in choices if allowed(choice)]
            gains = [sum(frozenset({(name, choice[name]), item}) in open_pairs for item in case.items()) for choice in choices]
            case = rng.choice([choice for choice, gain in zip(choices, gains) if gain == max(gains)])
        open_pairs -= pairs_of(case)
        cases.append(case)
    return cases, count

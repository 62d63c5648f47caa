"""Writes packages/conformance/goldens/torch.bin.gz. See README.md."""

import os
import sys

import torch

import cases
import container
from families import FAMILIES

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, '..', '..', 'packages', 'conformance', 'goldens', 'torch.bin.gz')


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    table = {}
    for family in FAMILIES:
        table.update(family.CALLS)
        family.cases()
    numbers, ops = [], {}
    # The numbers stand in the order of the index, which is grouped by operation.
    for case in sorted(cases.CASES, key=lambda case: case.op):
        try:
            ops.setdefault(case.op, []).append(cases.compute(case, table, numbers))
        except Exception as error:
            cases.PROBLEMS.append(f'{case.name}: {error}')
    return numbers, ops


if __name__ == '__main__':
    numbers, ops = main()
    index = {'framework': f'torch {torch.__version__}', 'ops': ops}
    size, text, count = container.write(OUT, index, numbers)
    total = sum(map(len, ops.values()))
    print(f'{total} cases of {len(ops)} operations, {count} numbers, index {text} bytes, file {size} bytes')
    for op, why in sorted(cases.NO_SECOND.items()):
        print(f'no second derivative of {op}: {why}')
    for problem in cases.PROBLEMS:
        print(f'PROBLEM {problem}', file=sys.stderr)
    sys.exit(1 if cases.PROBLEMS else 0)

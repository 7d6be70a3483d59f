"""Two small trees with branches of two kinds, as attributes of ONNX's tree ensembles."""

from __future__ import annotations

from typing import Any

NODES: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
    "nodes_featureids": [1, 0, 0, 0, 0, 2, 0, 0],
    "nodes_values": [0.5, 0, 0, -0.5, 0, 1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 3, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 0, 4, 0, 0],
}

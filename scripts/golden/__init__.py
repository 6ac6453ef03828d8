"""Cases whose truth is computed by PyTorch; scripts/make_golden.py writes them."""

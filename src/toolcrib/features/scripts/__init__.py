"""Scripts with metadata in any language, and the executor chains that run them."""

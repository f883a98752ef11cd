"""What commands and endpoints of features are made of."""

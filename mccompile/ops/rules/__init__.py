"""What operators share: rules for types, shapes, windows and loops. No operator is defined here."""

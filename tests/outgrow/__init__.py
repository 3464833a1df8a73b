"""Scripts on real servers that need root, minutes, or what is not on every machine: ``make outgrow`` runs them."""

"""Load workers: what they are asked (`work`), what they send (`plan`), how they count (`recorder`), who starts them."""

"""Set experiment: images as sets of points, and bags of instances, classified by set models of equal size."""
